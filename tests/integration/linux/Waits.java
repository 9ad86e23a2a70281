/** Waits for another thread in a loop, and prints for how long. With the word objects, the loop makes objects, as brokers do. */
class Waits {
    private static volatile boolean isSet;
    private static volatile Object last;

    public static void main(String[] words) throws InterruptedException {
        Thread setter = new Thread(() -> {
            try {
                Thread.sleep(2000);
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
            isSet = true;
        });
        setter.start();
        long began = System.nanoTime();
        if (words.length > 0 && words[0].equals("objects")) {
            while (!isSet) {
                last = new long[8];
            }
        } else {
            while (!isSet) {
                Thread.onSpinWait();
            }
        }
        System.out.println((System.nanoTime() - began) / 1_000_000 + " ms");
        setter.join();
    }
}
