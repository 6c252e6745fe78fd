"""How far Spark is, for a display."""

from pyspark.sql import SparkSession


def task_progress(spark: SparkSession) -> tuple[int, int] | None:
    """Tasks done and tasks in all, over the stages that run now.

    None when nothing runs, or when the session does not tell: Spark Connect has no tracker.
    """
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # a display must never end the run it is about
        return None
    running = [stage for stage in stages if stage is not None]
    if not running:
        return None
    return sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running)
