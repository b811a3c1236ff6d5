"""The runs that show the fence at work: demo, storm and turf-war."""
