// Package match compiles the paths of rules and finds the rule that decides on a URL.
//
// Begin reading at RuleSet, which is all allow and disallow lines of one agent. A Pattern is
// the path of one line, cut at its wildcards. Rules without wildcards are in a prefixIndex,
// which a check searches in logarithmic time; the others are tried in the order in which
// they win, after a filter of pairs of bytes. Compile reads a path as Google, Yandex and
// RFC 9309 do; a RuleSet of Google's published parser reads it as that does.
//
// Packages below robots call it. It starts no goroutine and has no locks: what is compiled
// does not change. RuleSet.DecidingRule and Pattern.Matches allocate nothing.
package match
