"""The analysis as a Spark job: everything that imports pyspark, but for the dataflow of `large_keys`."""
