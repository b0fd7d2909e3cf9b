# Read by every command of Spark: the machine's Java, or the one that pip has brought; and this Python everywhere.
export PYSPARK_PYTHON=${PYSPARK_PYTHON:-$(command -v python3)}
export JAVA_HOME=${JAVA_HOME:-$("$PYSPARK_PYTHON" -m elea.spark.java)}
export SPARK_LOCAL_IP=${SPARK_LOCAL_IP:-127.0.0.1}
