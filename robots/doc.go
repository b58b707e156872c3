// Package robots parses robots.txt and decides which URLs it allows, in the Dialect of one search
// engine: Google, which follows RFC 9309 and Google's documentation; Yandex; or GoogleOSS, which
// reproduces Google's published parser exactly.
//
// There are three steps. A crawl parses a file when it arrives, compiles its rules for one Agent
// when it first uses them, and checks them for every link:
//
//	agent, err := robots.NewAgent("examplebot")
//	if err != nil {
//		return err
//	}
//	file := robots.Parse(body, robots.Google)
//	rules := file.RulesFor(agent)
//	verdict := rules.Check(u) // verdict.Allowed, and the rule that decided
//
// Methods of File return what a file says to all agents: File.Sitemaps, File.MainMirror, and
// File.URLCleaner for Clean-param. RobotsURLAppliesTo reports which URLs a file covers.
//
// Begin reading at ParseOptions.Parse in file.go, then File.RulesFor in agent_groups.go and
// Rules.Check in rules.go. Package robots/internal/syntax reads the lines, and robots/internal/match
// finds the rule that decides. The dialects are in yandex_dialect.go and google_oss.go. Comments and
// the examples in testdata cite requirements by their codes, such as MATCH-12;
// docs/robots-requirements.md explains each.
//
// Other packages build on this one. Package robots/gate fetches and caches robots.txt for a crawl
// and clears URLs; robots/aiuse reads what a site says about the use of its content, from the lines
// that File.LinesFor returns; robots/lint reports to site owners what is wrong with a file and what
// a new version changes.
//
// Values are immutable and safe for concurrent use, and the package starts no goroutine and holds no
// lock. It never fetches, waits or reads the clock. Parsing never fails: it ignores a line that it
// cannot read, as the standard demands.
package robots
