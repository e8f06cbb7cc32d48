import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The job as one writes it with Kafka Streams, exactly once: a perceptron for each partition, examples that
 * wait for their labels and weights in state stores with changelogs.
 *
 * Options are system properties. `tuned`: JSON as a stream of tokens and cached stores; without it a tree of
 * Jackson's and stores as they come. `commit.ms`: between two commits. `records`: labelled examples after
 * which it ends; 0: it says `ready` once it works, and works until it is killed.
 */
public final class Contender {
    private static final boolean TUNED = Boolean.getBoolean("tuned");
    private static final long RECORDS = Long.getLong("records");
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** One stream thread runs all tasks, so plain fields count for all of them; others only read. */
    private static volatile long began, half, labelled;
    private static volatile long cpuBegan, cpuHalf;
    private static volatile long mistakes, updates;
    private static volatile double commitsBeforeLast;
    private static KafkaStreams streams;

    public static void main(String[] unused) throws Exception {
        streams = new KafkaStreams(topology(), properties());
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.setStateListener((now, before) -> {
            if (RECORDS == 0 && now == KafkaStreams.State.RUNNING) {
                System.out.println("ready");
            }
        });
        streams.start();
        if (RECORDS == 0) {
            Thread.currentThread().join();
        }
        while (labelled < RECORDS) {
            Thread.sleep(1);
        }
        while (commits() == commitsBeforeLast) {
            Thread.sleep(1);
        }
        long ended = System.nanoTime();
        long cpuEnded = SYSTEM.getProcessCpuTime();
        System.out.printf(
            "{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"labelled\": %d, \"mistakes\": %d, \"updates\": %d, "
                + "\"transactions\": %.0f, \"half_seconds\": %.6f, \"half_cpu_seconds\": %.6f, \"half_labelled\": %d}%n",
            (ended - began) / 1e9, (cpuEnded - cpuBegan) / 1e9, labelled, mistakes, updates,
            commits(), (ended - half) / 1e9, (cpuEnded - cpuHalf) / 1e9, labelled - RECORDS / 2);
        System.exit(0);
    }

    private static Properties properties() {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getProperty("bootstrap"));
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, System.getProperty("prefix") + "group");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("folder"));
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, System.getProperty("commit.ms"));
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, TUNED ? 64L << 20 : 10L << 20);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), TUNED ? 4_000 : 1_000);
        if (TUNED) {
            properties.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 262_144);
        }
        return properties;
    }

    private static Topology topology() {
        String examples = System.getProperty("examples");
        String labels = System.getProperty("labels");
        var bytes = Serdes.ByteArray();
        return new Topology()
            .addSource("in", bytes.deserializer(), bytes.deserializer(), examples, labels)
            .addProcessor("learn", () -> new Learner(examples), "in")
            .addStateStore(store("waiting"), "learn")
            .addStateStore(store("early"), "learn")
            .addStateStore(store("weights"), "learn")
            .addSink("out", System.getProperty("prefix") + "predictions", bytes.serializer(), bytes.serializer(), "learn");
    }

    private static StoreBuilder<KeyValueStore<String, byte[]>> store(String name) {
        var builder = Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore(name), Serdes.String(), Serdes.ByteArray());
        return TUNED ? builder.withCachingEnabled() : builder;
    }

    /** Commits of the stream thread; it grows when one was acknowledged. */
    private static double commits() {
        return streams.metrics().entrySet().stream()
            .filter(each -> each.getKey().name().equals("commit-total") && each.getKey().group().equals("stream-thread-metrics"))
            .mapToDouble(each -> ((Number) each.getValue().metricValue()).doubleValue())
            .sum();
    }

    /** An example or a label as its message has it; of the two, `label` is null in an example. */
    private record Message(String id, Map<String, Double> features, Boolean label) {}

    private static final class Learner implements Processor<byte[], byte[], byte[], byte[]> {
        private static final JsonFactory TOKENS = new JsonFactory();
        private static final ObjectMapper TREES = new ObjectMapper();

        private final String examples;
        private final Map<String, Double> weights = new HashMap<>();
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<String, byte[]> waiting, early, stored;

        Learner(String examples) {
            this.examples = examples;
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
            waiting = context.getStateStore("waiting");
            early = context.getStateStore("early");
            stored = context.getStateStore("weights");
            try (KeyValueIterator<String, byte[]> all = stored.all()) {
                all.forEachRemaining(each -> weights.put(each.key, Double.valueOf(text(each.value))));
            }
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            if (began == 0) {
                cpuBegan = SYSTEM.getProcessCpuTime();
                began = System.nanoTime();
            }
            Message message = read(record.value());
            RecordMetadata source = context.recordMetadata().orElseThrow();
            if (source.topic().equals(examples)) {
                double score = score(message.features());
                context.forward(record.withValue(told(message, score, source.offset())));
                byte[] label = early.delete(message.id());
                if (label != null) {
                    learn(message.features(), score > 0, label[0] == 1);
                } else {
                    waiting.put(message.id(), predicted(score > 0, record.value()));
                }
                return;
            }
            byte[] found = waiting.delete(message.id());
            if (found == null) {
                early.put(message.id(), new byte[] {(byte) (message.label() ? 1 : 0)});
            } else {
                byte[] value = Arrays.copyOfRange(found, 1, found.length);
                learn(read(value).features(), found[0] == 1, message.label());
            }
        }

        private void learn(Map<String, Double> features, boolean predicted, boolean label) {
            if (predicted != label) {
                mistakes++;
            }
            if (score(features) > 0 != label) {
                updates++;
                features.forEach((name, value) -> {
                    double weight = weights.merge(name, label ? value : -value, Double::sum);
                    stored.put(name, Double.toString(weight).getBytes(StandardCharsets.UTF_8));
                });
            }
            if (labelled + 1 == RECORDS / 2) {
                cpuHalf = SYSTEM.getProcessCpuTime();
                half = System.nanoTime();
            }
            if (labelled + 1 == RECORDS) {
                commitsBeforeLast = commits();
                context.commit();
            }
            labelled++;
        }

        private double score(Map<String, Double> features) {
            double sum = 0;
            for (Map.Entry<String, Double> each : features.entrySet()) {
                sum += weights.getOrDefault(each.getKey(), 0.0) * each.getValue();
            }
            return sum;
        }

        private static byte[] predicted(boolean positive, byte[] value) {
            byte[] kept = new byte[value.length + 1];
            kept[0] = (byte) (positive ? 1 : 0);
            System.arraycopy(value, 0, kept, 1, value.length);
            return kept;
        }

        private static Message read(byte[] value) {
            try {
                return TUNED ? ofTokens(value) : ofTree(value);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static Message ofTree(byte[] value) throws IOException {
            JsonNode tree = TREES.readTree(value);
            JsonNode label = tree.get("label");
            Map<String, Double> features = new LinkedHashMap<>();
            if (tree.has("features")) {
                tree.get("features").properties().forEach(each -> features.put(each.getKey(), each.getValue().doubleValue()));
            }
            return new Message(tree.get("id").textValue(), features, label == null ? null : label.booleanValue());
        }

        private static Message ofTokens(byte[] value) throws IOException {
            String id = null;
            Boolean label = null;
            Map<String, Double> features = new LinkedHashMap<>();
            try (JsonParser parser = TOKENS.createParser(value)) {
                parser.nextToken();
                while (parser.nextToken() == JsonToken.FIELD_NAME) {
                    String name = parser.currentName();
                    parser.nextToken();
                    switch (name) {
                        case "id" -> id = parser.getText();
                        case "label" -> label = parser.getBooleanValue();
                        case "features" -> {
                            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                                String feature = parser.currentName();
                                parser.nextToken();
                                features.put(feature, parser.getDoubleValue());
                            }
                        }
                        default -> parser.skipChildren();
                    }
                }
            }
            return new Message(id, features, label);
        }

        private static byte[] told(Message message, double score, long source) {
            try {
                if (!TUNED) {
                    ObjectNode tree = TREES.createObjectNode();
                    tree.put("id", message.id()).put("prediction", score > 0).put("score", score).put("source", source);
                    message.features().forEach(tree.putObject("features")::put);
                    return TREES.writeValueAsBytes(tree);
                }
                var out = new ByteArrayOutputStream(256);
                try (var generator = TOKENS.createGenerator(out)) {
                    generator.writeStartObject();
                    generator.writeStringField("id", message.id());
                    generator.writeBooleanField("prediction", score > 0);
                    generator.writeNumberField("score", score);
                    generator.writeNumberField("source", source);
                    generator.writeObjectFieldStart("features");
                    for (Map.Entry<String, Double> each : message.features().entrySet()) {
                        generator.writeNumberField(each.getKey(), each.getValue());
                    }
                    generator.writeEndObject();
                    generator.writeEndObject();
                }
                return out.toByteArray();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static String text(byte[] value) {
            return new String(value, StandardCharsets.UTF_8);
        }
    }
}
