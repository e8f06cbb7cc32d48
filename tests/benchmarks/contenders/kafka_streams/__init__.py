"""The job on Kafka Streams, exactly once: `Contender.java`, on the JRE and the jars that the broker of the tests has.

Eclipse's compiler is a jar like the others, so no JDK is needed.
"""
