// Package storagetest is the specification of storage.Store as a suite of tests. Each sentence of the
// contract has a test that fails if an engine breaks it. The test file of an engine calls Run, and
// RunDurable if the engine keeps its state; Bench measures it:
//
//	func TestStore(t *testing.T) {
//		storagetest.Run(t, func(t testing.TB) storage.Store { return mystore.New() })
//	}
//
// An engine must implement storage.Inspector. The tests of storage.Importer are skipped if it does not
// implement that.
//
// Begin reading at suite.go, and then at the tests in add_and_order.go: each is a timeline of calls of a
// fixture. random_calls.go compares an engine with a model of the contract (model.go) through random
// calls. Its failures name a seed, which the environment variable STORAGETEST_SEED repeats.
//
// The suite never sleeps, since time is an argument of the contract. Its clock begins in 2100, later
// than the clock of any engine that reads one: a delay that an engine adds when it is opened is over
// then. Its tests run in parallel, each with a Store of its own. Only the tests of concurrent calls
// start goroutines, and wait for them. The one lock, concurrentCrawl.mu, is held during no call of the
// Store.
package storagetest
