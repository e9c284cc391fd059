"""What a language model can do: sample with log-probabilities, and score."""
