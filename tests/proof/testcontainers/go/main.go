// Testcontainers' module for Go starts the image, with all services and with one, and azblob uses it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/azure/azurite"
)

const image = "mcr.microsoft.com/azure-storage/azurite:latest"

func use(what string, options ...testcontainers.ContainerCustomizer) {
	ctx := context.Background()
	container, err := azurite.Run(ctx, image, options...)
	defer func() {
		if err := testcontainers.TerminateContainer(container); err != nil {
			log.Fatalf("%s: %v", what, err)
		}
	}()
	must(what, err)
	address, err := container.BlobServiceURL(ctx)
	must(what, err)
	credential, err := azblob.NewSharedKeyCredential(azurite.AccountName, azurite.AccountKey)
	must(what, err)
	url := fmt.Sprintf("%s/%s", address, azurite.AccountName)
	client, err := azblob.NewClientWithSharedKeyCredential(url, credential, nil)
	must(what, err)
	_, err = client.CreateContainer(ctx, "box", nil)
	must(what, err)
	_, err = client.UploadBuffer(ctx, "box", "b", []byte("hello"), nil)
	must(what, err)
	found := make([]byte, 5)
	_, err = client.DownloadBuffer(ctx, "box", "b", found, nil)
	must(what, err)
	if !bytes.Equal(found, []byte("hello")) {
		log.Fatalf("%s: %q", what, found)
	}
	fmt.Println("done:", what)
}

func must(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}

func main() {
	use("all services")
	use("blobs only", azurite.WithEnabledServices(azurite.BlobService))
	use("in memory", azurite.WithInMemoryPersistence(64))
}
