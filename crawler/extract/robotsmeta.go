package extract

import (
	"net/http"
	"strings"
)

// RobotsDirectives are a page's directives for robots, which add to robots.txt. The zero value
// restricts nothing.
type RobotsDirectives struct {
	NoIndex      bool // do not show the page in results
	NoFollow     bool // do not follow its links
	NoArchive    bool // do not keep a copy to show; also "nocache"
	NoSnippet    bool // do not show an extract
	NoTranslate  bool // do not offer a translation
	NoImageIndex bool // do not show its images in results
	NoAI         bool // do not train models on it; also "noml"
	NoImageAI    bool // do not train models on its images
}

// A RobotsMeta has the directives of the page's meta elements with one name.
type RobotsMeta struct {
	Agent string // in lower case; "robots" addresses all agents
	RobotsDirectives
}

// RobotsDirectivesFor returns the page's directives for the agent with the product token: those of
// its meta elements and of the X-Robots-Tag fields in header that address every robot or this one.
// The result is the union of all directives, so no directive can lift another. d may be nil,
// because responses that are not HTML can have a header.
func (d *ScanResult) RobotsDirectivesFor(token string, header http.Header) RobotsDirectives {
	var sum RobotsDirectives
	if d != nil {
		for _, rule := range d.RobotsMeta {
			if appliesToAgent(rule.Agent, token) {
				sum = sum.union(rule.RobotsDirectives)
			}
		}
	}
	for _, field := range header.Values("X-Robots-Tag") {
		sum = sum.union(parseRobotsTag(field, token))
	}
	return sum
}

// parseRobotsTag returns the directives of one X-Robots-Tag field for token. An agent's name and a
// colon before a directive limit that directive, and all after it, to the agent.
func parseRobotsTag(field, token string) (sum RobotsDirectives) {
	agent := ""
	for part := range strings.SplitSeq(field, ",") {
		name, rest, found := strings.Cut(part, ":")
		if name = strings.TrimSpace(name); found && isAgentName(name) {
			agent, part = name, rest
		}
		if appliesToAgent(agent, token) {
			sum = sum.union(parseRobotsDirectives(part))
		}
	}
	return sum
}

// isAgentName reports whether the text before a colon is the name of an agent, rather than a
// directive that has a value, or part of a date.
func isAgentName(name string) bool {
	switch strings.ToLower(name) {
	case "", "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
		return false
	}
	return !strings.ContainsAny(name, " \t")
}

// appliesToAgent reports whether a directive for agent applies to the agent with the product token.
func appliesToAgent(agent, token string) bool {
	agent, _, _ = strings.Cut(agent, "/")
	switch {
	case agent == "", agent == "*", strings.EqualFold(agent, "robots"):
		return true
	}
	return strings.EqualFold(agent, token)
}

// parseRobotsDirectives returns the directives in list. Unknown ones are ignored.
func parseRobotsDirectives(list string) (d RobotsDirectives) {
	separator := func(r rune) bool { return strings.ContainsRune(whitespace+",;", r) }
	for word := range strings.FieldsFuncSeq(list, separator) {
		switch strings.ToLower(word) {
		case "none":
			d.NoIndex, d.NoFollow = true, true
		case "noindex":
			d.NoIndex = true
		case "nofollow":
			d.NoFollow = true
		case "noarchive", "nocache":
			d.NoArchive = true
		case "nosnippet":
			d.NoSnippet = true
		case "notranslate":
			d.NoTranslate = true
		case "noimageindex":
			d.NoImageIndex = true
		case "noai", "noml":
			d.NoAI = true
		case "noimageai":
			d.NoImageAI = true
		}
	}
	return d
}

// union returns the directives that are in d or e.
func (d RobotsDirectives) union(e RobotsDirectives) RobotsDirectives {
	return RobotsDirectives{
		NoIndex:      d.NoIndex || e.NoIndex,
		NoFollow:     d.NoFollow || e.NoFollow,
		NoArchive:    d.NoArchive || e.NoArchive,
		NoSnippet:    d.NoSnippet || e.NoSnippet,
		NoTranslate:  d.NoTranslate || e.NoTranslate,
		NoImageIndex: d.NoImageIndex || e.NoImageIndex,
		NoAI:         d.NoAI || e.NoAI,
		NoImageAI:    d.NoImageAI || e.NoImageAI,
	}
}

// String returns the directives as in a meta element, separated by commas.
func (d RobotsDirectives) String() string {
	var words []string
	for _, w := range [...]struct {
		isSet bool
		word  string
	}{
		{d.NoIndex, "noindex"}, {d.NoFollow, "nofollow"}, {d.NoArchive, "noarchive"},
		{d.NoSnippet, "nosnippet"}, {d.NoTranslate, "notranslate"},
		{d.NoImageIndex, "noimageindex"}, {d.NoAI, "noai"}, {d.NoImageAI, "noimageai"},
	} {
		if w.isSet {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

// handleNamedMeta processes a meta element with the given name attribute.
func (p *pageParser) handleNamedMeta(name string, content []byte) {
	switch {
	case strings.EqualFold(name, "tdm-reservation"):
		if value := trim(content); len(p.result.TDMReservationMeta) == 0 || string(value) == "1" {
			p.result.TDMReservationMeta = string(value[:min(len(value), maxAgentBytes)])
		}
	case strings.EqualFold(name, "tdm-policy"):
		if value := trim(content); p.result.TDMPolicyMeta == "" && len(value) <= maxRefBytes {
			p.result.TDMPolicyMeta = string(value)
		}
	default:
		p.addRobotsMeta(name, content)
	}
}

// addRobotsMeta keeps the directives of a meta element called name. Any name may be that of an
// agent, so it keeps all elements that have directives. Most meta elements are ruled out quickly,
// because every directive contains "no".
func (p *pageParser) addRobotsMeta(name string, content []byte) {
	if len(name) > maxAgentBytes || indexFold(content, "no") < 0 {
		return
	}
	directives := parseRobotsDirectives(string(content))
	if directives == (RobotsDirectives{}) {
		return
	}
	name = strings.ToLower(name)
	for i, known := range p.result.RobotsMeta {
		if known.Agent == name {
			p.result.RobotsMeta[i].RobotsDirectives = known.union(directives)
			return
		}
	}
	if len(p.result.RobotsMeta) < maxRobotsMetaAgents {
		p.result.RobotsMeta = append(p.result.RobotsMeta, RobotsMeta{name, directives})
	}
}
