"""Where intents, domains and outcomes are remembered; ledgers run rules and know none."""
