// Package syntax parses the lines of a robots.txt and the values of its fields.
//
// Begin reading at ParseLine in line.go. The package decides what a line says and whether its value
// is valid. Package robots decides which agents the line addresses and what effect it has. Each field
// has its own function, such as ParseCrawlDelay, which both robots and robots/lint call: therefore
// lint reports as invalid exactly the values that robots ignores.
//
// The robots packages call it. It starts no goroutine, holds no lock and keeps no state.
package syntax
