package memory_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

func BenchmarkMemory(b *testing.B) {
	storagetest.Bench(b, func(testing.TB) storage.Store {
		return memory.New(memory.Config{MaxURLs: 1 << 40})
	})
}
