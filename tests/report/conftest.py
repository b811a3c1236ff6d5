"""The browser, for the tests of pages."""

from tests.browser import chromium

__all__ = ["chromium"]
