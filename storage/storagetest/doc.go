// Package storagetest is the specification of storage.Store as a suite of
// tests: every sentence of the contract has one that can fail. An engine's own
// test file is one call of Run, and one of RunDurable if it keeps its state.
//
// The suite never sleeps: time is an argument of the contract. Its clock
// begins in 2100, later than that of any engine that looks at one, so that a
// rest an engine adds on being opened is over.
package storagetest
