"""The job for spark-submit: `spark-submit --py-files dist/*.whl jobs/evaluate.py --date D ...`."""

import sys

from ranklake.cli import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
