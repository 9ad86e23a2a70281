"""The analysis as a Spark job: everything that imports pyspark."""
