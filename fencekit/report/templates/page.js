"use strict";
(() => {
  const all = (selector, root) => [...(root || document).querySelectorAll(selector)];

  // Copy buttons beside commands.
  for (const box of all("[data-copy]")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.querySelector("pre").textContent.trim());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  }

  // Filters: items carry data-tags; one pressed button per group; the search box reads the text.
  for (const bar of all("[data-filters]")) {
    const items = all("[data-item]");
    const pressed = new Map();
    const status = bar.querySelector("[role=status]");
    const search = bar.querySelector("input[type=search]");
    const apply = () => {
      const words = search ? search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
      let shown = 0;
      for (const item of items) {
        const tags = (item.dataset.tags || "").split(" ");
        const text = words.length ? item.textContent.toLowerCase() : "";
        const fits = [...pressed.values()].every((tag) => tags.includes(tag)) && words.every((word) => text.includes(word));
        item.hidden = !fits;
        if (fits) shown += 1;
      }
      status.textContent = `${shown} of ${items.length} shown`;
    };
    for (const button of all("button[data-tag]", bar)) {
      button.addEventListener("click", () => {
        const group = button.dataset.tag.split(":")[0];
        const on = button.getAttribute("aria-pressed") !== "true";
        for (const other of all("button[data-tag]", bar)) {
          if (other.dataset.tag.split(":")[0] === group) other.setAttribute("aria-pressed", "false");
        }
        button.setAttribute("aria-pressed", String(on));
        if (on) pressed.set(group, button.dataset.tag); else pressed.delete(group);
        apply();
      });
    }
    if (search) search.addEventListener("input", apply);
    bar.hidden = false;
    apply();
  }

  // Sorting: a heading with data-sort gets a button; cells sort by data-value, else by their text.
  for (const head of all("th[data-sort]")) {
    const table = head.closest("table");
    const body = table.tBodies[0];
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const at = [...head.parentNode.children].indexOf(head);
      for (const other of all("th", table)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[at].dataset.value || row.cells[at].textContent.trim();
      const rows = [...body.rows].filter((row) => row.cells.length > at && row.hasAttribute("data-item"));
      rows.sort((a, b) => key(a).localeCompare(key(b), "en", { numeric: true }) * (up ? 1 : -1));
      for (const row of rows.reverse()) body.prepend(row);
    });
  }
})();
