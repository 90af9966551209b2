"""What a label means: the order of the grades, and labels in any form as ranges of ranks 1..K."""
