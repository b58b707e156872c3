// Package robotstest contains what the tests of the robots packages share: URLs, example files, and a
// slow reference implementation of the requirements to compare verdicts with. Begin reading at
// Example and DecidingRule. It imports none of the packages under test.
package robotstest
