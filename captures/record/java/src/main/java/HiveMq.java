import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt5.Mqtt5BlockingClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5Client;
import com.hivemq.client.mqtt.mqtt5.Mqtt5ClientBuilder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A publisher and a subscriber of `Resource1`, MQTT 5. */
public final class HiveMq {
    public static void main(String[] arguments) throws Exception {
        App app = new App(arguments);
        Mqtt5ClientBuilder builder = Mqtt5Client.builder().identifier(app.text("role"))
            .serverHost(app.text("server").split(":")[0]).serverPort(app.number("port"));
        if (app.secured()) {
            builder = builder.sslConfig().protocols(List.of("TLSv1.3")).applySslConfig().simpleAuth().username(app.text("user"))
                .password(app.text("password").getBytes(StandardCharsets.UTF_8)).applySimpleAuth();
        }
        Mqtt5BlockingClient client = builder.buildBlocking();
        app.begin();
        client.connect();
        MqttQos qos = MqttQos.fromCode(app.number("qos"));
        if (app.sends()) {
            for (String payload : app.payloads()) {
                app.sent(payload);
                client.publishWith().topic("Resource1").qos(qos).payload(payload.getBytes(StandardCharsets.UTF_8)).send();
                app.pause();
            }
        } else {
            client.toAsync().subscribeWith().topicFilter("Resource1").qos(qos)
                .callback(message -> app.received(message.getPayloadAsBytes())).send().join();
            app.awaitLast();
        }
        client.disconnect();
        System.exit(0);
    }
}
