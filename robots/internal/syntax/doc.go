// Package syntax reads the lines of a robots.txt and the values of its fields.
//
// Begin reading at ParseLine. The package says what a line states and whether its value is
// correct. It does not say to whom the line speaks or what follows from it: package robots
// decides that. The value of each field has a function of its own, such as ParseCrawlDelay,
// so that the linter calls incorrect what robots ignores.
//
// Packages below robots call it. It starts no goroutine, has no locks and keeps no state.
package syntax
