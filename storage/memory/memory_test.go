package memory_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

func TestMemory(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Store { return memory.New(memory.Config{}) })
}
