"""Pure tensor functions: losses, advantages, penalties. They import torch and nothing of the project."""
