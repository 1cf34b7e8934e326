import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLSocketFactory;
import org.eclipse.paho.mqttv5.client.IMqttToken;
import org.eclipse.paho.mqttv5.client.MqttCallback;
import org.eclipse.paho.mqttv5.client.MqttClient;
import org.eclipse.paho.mqttv5.client.MqttConnectionOptions;
import org.eclipse.paho.mqttv5.client.MqttDisconnectResponse;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.MqttException;
import org.eclipse.paho.mqttv5.common.MqttMessage;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;

/** A publisher and a subscriber of `Resource1`, MQTT 5. */
public final class Paho {
    public static void main(String[] arguments) throws Exception {
        App app = new App(arguments);
        String scheme = app.secured() ? "ssl://" : "tcp://";
        MqttClient client = new MqttClient(scheme + app.text("server"), app.text("role"), new MemoryPersistence());
        MqttConnectionOptions options = new MqttConnectionOptions();
        if (app.secured()) {
            options.setSocketFactory(SSLSocketFactory.getDefault());
            options.setUserName(app.text("user"));
            options.setPassword(app.text("password").getBytes(StandardCharsets.UTF_8));
        }
        client.setCallback(new Receiver(app));
        app.begin();
        client.connect(options);
        if (app.sends()) {
            publish(app, client);
        } else {
            client.subscribe("Resource1", app.number("qos"));
            app.awaitLast();
        }
        client.disconnect();
        System.exit(0);
    }

    private static void publish(App app, MqttClient client) throws Exception {
        for (String payload : app.payloads()) {
            app.sent(payload);
            client.publish("Resource1", payload.getBytes(StandardCharsets.UTF_8), app.number("qos"), false);
            app.pause();
        }
    }

    private record Receiver(App app) implements MqttCallback {
        @Override
        public void messageArrived(String topic, MqttMessage message) {
            app.received(message.getPayload());
        }

        @Override
        public void mqttErrorOccurred(MqttException exception) {
            app.error(exception);
        }

        @Override
        public void disconnected(MqttDisconnectResponse response) {}

        @Override
        public void deliveryComplete(IMqttToken token) {}

        @Override
        public void connectComplete(boolean reconnect, String uri) {}

        @Override
        public void authPacketArrived(int reason, MqttProperties properties) {}
    }
}
