"""Offline evaluation of rankers on click logs."""
