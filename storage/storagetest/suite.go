package storagetest

import (
	"testing"

	"github.com/decorum-crawler/decorum/storage"
)

// Run tests that the Stores which open returns obey the contract of storage.Store. open must return a
// new, empty Store that is also a storage.Inspector. Each test opens its own Store and closes it.
func Run(t *testing.T, open func(t testing.TB) storage.Store) {
	for _, group := range [][]testCase{addTests, orderTests, rankTests, schedulingTests, leaseTests, waitTests,
		ackTests, requestTests, revisitTests, rescheduleTests, holdTests, parkAndNoteTests, hostCounterTests} {
		for _, tt := range group {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.run(newFixture(t, open(t)))
			})
		}
	}
	t.Run("inspect", func(t *testing.T) { runInspectorTests(t, open) })
	t.Run("import", func(t *testing.T) { runImporterTests(t, open) })
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		testRandomCalls(t, func() storage.Store { return open(t) }, nil)
	})
	t.Run("concurrent", func(t *testing.T) {
		t.Parallel()
		testConcurrentCrawl(newFixture(t, open(t)))
	})
}

// A testCase tests the sentence of the contract that is its name.
type testCase struct {
	name string
	run  func(*fixture)
}
