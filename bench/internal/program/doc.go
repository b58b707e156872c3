// Package program has what the benchmark programs have in common. They run themselves again with a
// task as JSON (TaskCommand), stop processes (Stop), share work among goroutines (RunWorkers), write
// profiles (RunProfiled), parse lists of numbers (ParseCounts) and exit with an error (Exit).
//
// RunWorkers waits for the goroutines that it starts. The package has no locks.
package program
