"""The client of `kafka://`, and the cluster's administration for both clients. The only importer of kafka-python."""
