"""What comes from the broker, and what goes back to it."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
broker = spark.conf.get("spark.house.broker")


@dp.table(comment="Every report of a lamp, as it came")
def bronze() -> DataFrame:
    return (
        spark.readStream.format("zenoh")
        .option("connect", broker)
        .option("startingOffsets", "earliest")
        .option("kind", "put")
        .option("payloadFormat", "json")
        .option("payloadSchema", "on BOOLEAN, luminosity DOUBLE")
        .load("myhouse/**/LightStatus")
    )


dp.create_sink("alerts", "zenoh", {"connect": broker, "payloadFormat": "json", "idempotent": "true"})


@dp.append_flow(target="alerts")
def glaring() -> DataFrame:
    return (
        spark.readStream.table("silver")
        .where("luminosity > 900")
        .selectExpr("concat('alerts/', floor, '/', room) AS key", "lamp", "luminosity", "timestamp")
    )
