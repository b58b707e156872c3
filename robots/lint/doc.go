// Package lint reports what is wrong with a robots.txt, and what a new version of it changes. Its
// findings are texts for the owners of sites.
//
//	for _, f := range lint.Check(body, robots.ParseOptions{}) {
//		fmt.Printf("line %d, %v: %s; %s\n", f.Line, f.Severity, f.Message, f.Advice)
//	}
//
// Begin reading at Check in lint.go, which returns the Findings about one file, and at Diff in
// diff.go, which compares the rules of two files for each agent. Both use the parsers of package
// robots and its internal packages, so that they call a value invalid if and only if crawlers ignore
// it. Check also reads the file as a robot of the 1994 standard does (original1994_parser.go).
//
// The decorum robots commands call it. It has no influence on a crawl, never fails, starts no
// goroutine and holds no lock. maxComparedAgents and maxComparedRules bound its time.
package lint
