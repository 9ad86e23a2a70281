/** Waits for another thread in a loop that makes objects, as brokers do. Prints for how long. */
class Waits {
    private static volatile boolean isSet;
    private static volatile Object last;

    public static void main(String[] arguments) throws InterruptedException {
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
        while (!isSet) {
            last = new long[8];
        }
        System.out.println((System.nanoTime() - began) / 1_000_000 + " ms");
        setter.join();
    }
}
