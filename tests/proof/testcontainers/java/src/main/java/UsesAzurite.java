// Testcontainers' module for Java starts the image with its own command, and looks for its ports inside.

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import org.testcontainers.azure.AzuriteContainer;

public final class UsesAzurite {
    public static void main(String[] arguments) {
        try (AzuriteContainer azurite =
                new AzuriteContainer("mcr.microsoft.com/azure-storage/azurite:latest")) {
            azurite.start();
            BlobContainerClient box = new BlobServiceClientBuilder()
                .connectionString(azurite.getConnectionString())
                .buildClient()
                .createBlobContainer("box");
            box.getBlobClient("b").upload(BinaryData.fromString("hello"));
            String found = box.getBlobClient("b").downloadContent().toString();
            if (!found.equals("hello")) {
                throw new AssertionError(found);
            }
            System.out.println("done");
        }
        System.exit(0);
    }
}
