"""Starts the one Spark that writes the tables: two local cores, no network beyond the loopback, clock in UTC."""
import os
from pathlib import Path

from pyspark.sql import SparkSession


def start(jars: Path, scratch: Path) -> SparkSession:
    """A session with every jar of `jars` and Delta's catalog; `scratch` takes what Spark leaves lying about."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["TZ"] = "UTC"
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(scratch))
    options = {
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    }
    builder = SparkSession.builder.master("local[2]").appName("lakebed-matrix")
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
