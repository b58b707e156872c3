//go:build race

package crawler_test

// race says that the race detector is on: everything takes ten times as long.
const raceEnabled = true
