package bolt

import (
	"testing"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, func(b testing.TB) storage.Store { return openStore(b, b.TempDir(), Options{}) })
}
