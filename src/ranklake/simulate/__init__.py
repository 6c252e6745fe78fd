"""Search and ads logs with known truth, written by Spark in parallel.

simulation.py   the knobs, and what follows from them: the known truth
draws.py        random numbers that are functions of their keys
world.py        what happened: who asked, what was shown, what was clicked
tables.py       what the logs say about it: impressions, clicks, conversions, scores; the dirt
write.py        the logs as tables in a directory
"""

from ranklake.simulate.simulation import Dirt, ModelQuality, Simulation, rising_models
from ranklake.simulate.tables import clicks, conversions, impressions, scores
from ranklake.simulate.write import generate

__all__ = [
    "Dirt",
    "ModelQuality",
    "Simulation",
    "clicks",
    "conversions",
    "generate",
    "impressions",
    "rising_models",
    "scores",
]
