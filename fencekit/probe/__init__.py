"""The probe: counts how many effects one repeated tool call really caused."""
