"""Who may do what: identities, how they are proved, and what they may do."""
