// Package match compiles the paths of rules and finds the rule that decides about a URL.
//
// Begin reading at RuleSet in rule_set.go, which contains all allow and disallow lines of one agent.
// A Pattern is the path of one line, cut at its wildcards. Rules without wildcards are in a
// prefixIndex, which a check searches in logarithmic time. A check tries the other rules in order of
// their precedence, and skips those that a BigramSet rules out. CompilePattern reads a path as
// Google, Yandex and RFC 9309 do; a RuleSet for GoogleOSS reads it as Google's published parser does.
//
// The robots packages call it. It starts no goroutine and holds no lock, because a RuleSet is
// immutable. RuleSet.DecidingRule and Pattern.Matches do not allocate.
package match
