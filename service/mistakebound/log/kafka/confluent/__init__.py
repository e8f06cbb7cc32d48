"""The client of `kafka+confluent://`: librdkafka does what grows with the stream. The only importer of
`confluent_kafka`, an extra: `pip install 'mistakebound[confluent]'`.

Membership, transactions and reads by offset go through it; topics, committed positions and watermarks are
asked for by kafka-python. Workers of either client may share a group.
"""
