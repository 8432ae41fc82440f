// A short example for each SDK. The connection string comes from the environment, as in production.

export const EXAMPLES: readonly (readonly [language: string, code: string])[] = [
  [
    "Python",
    `import os
from azure.storage.blob import BlobServiceClient
service = BlobServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
service.create_container("first").upload_blob("hello.txt", b"hello")`,
  ],
  [
    "JavaScript",
    `import { BlobServiceClient } from "@azure/storage-blob";
const service = BlobServiceClient.fromConnectionString(process.env.AZURE_STORAGE_CONNECTION_STRING);
await service.createContainer("first");`,
  ],
  [
    ".NET",
    `var service = new BlobServiceClient(Environment.GetEnvironmentVariable("AZURE_STORAGE_CONNECTION_STRING"));
var container = (await service.CreateBlobContainerAsync("first")).Value;
await container.UploadBlobAsync("hello.txt", BinaryData.FromString("hello"));`,
  ],
  [
    "Java",
    `var service = new BlobServiceClientBuilder()
    .connectionString(System.getenv("AZURE_STORAGE_CONNECTION_STRING")).buildClient();
service.createBlobContainer("first").getBlobClient("hello.txt").upload(BinaryData.fromString("hello"));`,
  ],
  [
    "Go",
    `ctx := context.Background()
service, err := azblob.NewClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), nil)
_, err = service.CreateContainer(ctx, "first", nil)
_, err = service.UploadBuffer(ctx, "first", "hello.txt", []byte("hello"), nil)`,
  ],
];
