// Testcontainers' module for Node starts the image in each way that it offers, and Azure's clients use it.
// Arguments: a certificate and its key (PEM), and a PFX file whose password is `secret`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";
import { AzuriteContainer } from "@testcontainers/azurite";

const [certificate, key, pfx] = process.argv.slice(2).map((path) => readFileSync(path));
const image = "mcr.microsoft.com/azure-storage/azurite:latest";

async function use(what, container) {
  const started = await container.start();
  try {
    const connection = started.getConnectionString();
    const box = BlobServiceClient.fromConnectionString(connection).getContainerClient("box");
    await box.create();
    await box.getBlockBlobClient("b").upload("hello", 5);
    assert.equal((await box.getBlockBlobClient("b").downloadToBuffer()).toString(), "hello");
    const queue = QueueServiceClient.fromConnectionString(connection).getQueueClient("queue");
    await queue.create();
    await queue.sendMessage("hello");
    assert.equal((await queue.receiveMessages()).receivedMessageItems[0].messageText, "hello");
    const table = TableClient.fromConnectionString(connection, "table", { allowInsecureConnection: true });
    await table.createTable();
    await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    assert.equal((await table.getEntity("p", "r")).n, 1);
    console.log("done:", what);
  } finally {
    await started.stop();
  }
}

await use("plain", new AzuriteContainer(image));
await use("in memory", new AzuriteContainer(image).withInMemoryPersistence().withSkipApiVersionCheck());
await use("an account of one's own", new AzuriteContainer(image)
  .withAccountName("orders").withAccountKey(Buffer.from("a key of one's own").toString("base64")));
await use("PEM, OAuth", new AzuriteContainer(image).withSsl(certificate, key).withOAuth());
await use("PFX", new AzuriteContainer(image).withSslPfx(pfx, "secret"));
