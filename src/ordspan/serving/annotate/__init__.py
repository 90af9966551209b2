"""The page where people grade items: what to ask, what was answered, and how it goes."""
