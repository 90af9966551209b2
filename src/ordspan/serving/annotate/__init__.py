"""The annotation pages: which item to show next, answers, and progress."""
