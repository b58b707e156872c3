package extract

import (
	"net/http"
	"strings"
)

// RobotsDirectives are what a page asks of robots beyond robots.txt. The zero value
// asks nothing.
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

// A RobotsMeta is what meta elements of one name ask.
type RobotsMeta struct {
	Agent string // in lower case; "robots" speaks to all
	RobotsDirectives
}

// RobotsDirectivesFor returns what the page asks of the agent with that product token:
// all that its meta elements and the X-Robots-Tag fields of the header ask of
// every robot or of this one. The stricter always wins, so nothing takes a
// directive back. d may be nil: what is not HTML can still have a header.
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

// parseRobotsTag reads one X-Robots-Tag field. An agent's name and a colon
// before a directive limit it, and those after it, to that agent.
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

// isAgentName reports whether what stands before a colon names an agent. The
// directives that have values do not, and neither does half a date.
func isAgentName(name string) bool {
	switch strings.ToLower(name) {
	case "", "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
		return false
	}
	return !strings.ContainsAny(name, " \t")
}

// appliesToAgent reports whether what is said to agent is said to the one with that
// product token.
func appliesToAgent(agent, token string) bool {
	agent, _, _ = strings.Cut(agent, "/")
	switch {
	case agent == "", agent == "*", strings.EqualFold(agent, "robots"):
		return true
	}
	return strings.EqualFold(agent, token)
}

// parseRobotsDirectives reads a list of directives. What is unknown is ignored.
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

// union returns what either asks.
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

// String returns the directives as a meta element would say them.
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

// handleNamedMeta reads a meta element of that name.
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

// addRobotsMeta keeps what a meta element of that name asks. Which names are agents
// cannot be told, so whatever asks something is kept. Most metas can be passed
// over at once: every directive begins with "no".
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
