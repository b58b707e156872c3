package sitemap

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/decorum-crawler/decorum"
)

// A xmlVocabulary is one of the kinds of documents that list URLs: the names of the
// elements that matter.
type xmlVocabulary struct {
	entryElem       string // holds one entry
	locElem         string // its location
	locIsHref       bool   // the location is an attribute: Atom
	dateElem        string // when it changed
	fallbackLocElem string // taken for the location if there is none and it is a URL
	isIndex         bool   // the locations are sitemaps
	isFeed          bool
}

// vocabularies are the forms of documents, by the local name of the root element.
var vocabularies = map[string]xmlVocabulary{
	"urlset":       {entryElem: "url", locElem: "loc", dateElem: "lastmod"},
	"sitemapindex": {entryElem: "sitemap", locElem: "loc", dateElem: "lastmod", isIndex: true},
	"rss":          {entryElem: "item", locElem: "link", dateElem: "pubDate", fallbackLocElem: "guid", isFeed: true},
	"RDF":          {entryElem: "item", locElem: "link", isFeed: true},
	"feed":         {entryElem: "entry", locElem: "link", locIsHref: true, dateElem: "updated", isFeed: true},
}

// An xmlDocumentReader is an XML document while it is being read.
type xmlDocumentReader struct {
	scanner
	xmlVocabulary
	emitter    *entryEmitter
	openElems  [][]byte    // the names of the elements that are open
	savedBases []savedBase // what locations were relative to before those of them with xml:base

	entryDepth   int          // how deep the open entry is; 0 if none is
	fieldDepth   int          // how deep the open field is; 0 if none is
	fieldValue   []byte       // of the open field
	valueErr     error        // why the value is unusable
	partialEntry partialEntry // the open entry
}

// A savedBase is what locations are relative to again when the element that is so deep
// ends.
type savedBase struct {
	depth int
	base  decorum.URL
}

// readDocument reads the document to the end of its root element.
func (d *xmlDocumentReader) readDocument() error {
	for {
		t, err := d.nextToken()
		switch err {
		case nil:
			err = d.handleToken(t)
		case io.EOF: // and not an error that wraps it, which says more
			err = errUnexpectedEOF
		}
		if err != nil && !d.emitter.stopped {
			err = d.emitUnfinished(t, err)
		}
		if err != nil {
			return err
		}
		if t.kind != textToken && len(d.openElems) == 0 {
			return nil
		}
	}
}

// emitUnfinished delivers the entry that an error at t left unfinished, if its
// location was read whole: before an end tag, however broken, it was.
func (d *xmlDocumentReader) emitUnfinished(t token, err error) error {
	if t.kind == endTag && d.fieldDepth > 0 {
		if emitErr := d.endElement(); d.emitter.stopped {
			return emitErr
		}
	}
	if d.entryDepth > 0 && len(d.partialEntry.rawLocation()) > 0 {
		if emitErr := d.emitEntry(); d.emitter.stopped {
			return emitErr
		}
	}
	return err
}

// handleToken takes the document one token further.
func (d *xmlDocumentReader) handleToken(t token) error {
	switch t.kind {
	case startTag:
		if err := d.startElement(t); err != nil || !t.selfClosing {
			return err
		}
		return d.endElement()
	case endTag:
		if len(d.openElems) == 0 || !bytes.Equal(d.openElems[len(d.openElems)-1], t.name) {
			return fmt.Errorf("end tag %.40q: %w", t.name, ErrSyntax)
		}
		return d.endElement()
	default:
		d.handleText(t)
		return nil
	}
}

// startElement opens an element.
func (d *xmlDocumentReader) startElement(t token) error {
	if len(d.openElems) == d.emitter.MaxElementDepth {
		return fmt.Errorf("depth: %w", ErrLimit)
	}
	d.pushElement(t.name)
	depth := len(d.openElems)
	switch {
	case depth == 1:
		format, ok := vocabularies[string(localName(t.name))]
		if !ok || d.emitter.FeedsOnly && !format.isFeed {
			return fmt.Errorf("element %.40q: %w", t.name, ErrNotSitemap)
		}
		d.xmlVocabulary = format
		d.applyXMLBase(t)
	case d.entryDepth == 0:
		d.applyXMLBase(t)
		if string(localName(t.name)) == d.entryElem {
			d.entryDepth = depth
			d.partialEntry.reset()
		}
	case depth == d.entryDepth+1 && bytes.Equal(namePrefix(t.name), namePrefix(d.openElems[d.entryDepth-1])):
		return d.startField(t)
	}
	return nil
}

// applyXMLBase heeds the xml:base of a feed, or of an entry: Atom has it (RFC 4287 §2),
// and RSS is found with it. One that is too long for a URL is none: it would make
// all that is relative to it as long.
func (d *xmlDocumentReader) applyXMLBase(t token) {
	raw := attributeValue(t.attrs, "xml:base")
	if !d.isFeed || raw == nil {
		return
	}
	ref, bad := decodeReferences(&d.textBuf, raw)
	u, err := d.emitter.base.ResolveBytes(ref)
	if bad == nil && err == nil && len(u.String()) <= d.emitter.MaxURLBytes {
		d.savedBases = append(d.savedBases, savedBase{len(d.openElems), d.emitter.base})
		d.emitter.base = u
	}
}

// startField opens an element of an entry.
func (d *xmlDocumentReader) startField(t token) error {
	d.fieldDepth, d.fieldValue, d.valueErr = len(d.openElems), d.fieldValue[:0], nil
	if !d.locIsHref || string(localName(t.name)) != d.locElem {
		return nil
	}
	rel := string(attributeValue(t.attrs, "rel"))
	if len(d.partialEntry.loc) > 0 || rel != "" && rel != "alternate" {
		return nil
	}
	href, err := decodeReferences(&d.textBuf, attributeValue(t.attrs, "href"))
	d.partialEntry.setLocation(href, d.in.line, err)
	return nil
}

// handleText takes text: that of the open field, or else, where an entry has
// no location element, the entry's own.
func (d *xmlDocumentReader) handleText(t token) {
	switch {
	case d.fieldDepth > 0:
		capacity := maxTextLen - len(d.fieldValue)
		d.fieldValue = append(d.fieldValue, t.text[:min(len(t.text), capacity)]...)
		if d.valueErr = cmp.Or(d.valueErr, t.textErr); d.valueErr == nil && len(t.text) > capacity {
			d.valueErr = ErrLimit
		}
	case d.entryDepth > 0 && d.entryDepth == len(d.openElems) && t.textErr == nil:
		if content := bytes.TrimSpace(t.text); len(content) > 0 {
			d.setFallbackLoc(content)
		}
	}
}

// setFallbackLoc notes what will do for a location if there is none.
func (d *xmlDocumentReader) setFallbackLoc(text []byte) {
	d.partialEntry.fallbackLoc = append(d.partialEntry.fallbackLoc[:0], text...)
	if len(d.partialEntry.loc) == 0 {
		d.partialEntry.line = d.in.line
	}
}

// endElement closes the innermost element.
func (d *xmlDocumentReader) endElement() (err error) {
	depth := len(d.openElems)
	name := localName(d.openElems[depth-1])
	d.openElems = d.openElems[:depth-1]
	switch depth {
	case d.fieldDepth:
		d.fieldDepth = 0
		err = d.endField(name)
	case d.entryDepth:
		err = d.emitEntry()
		d.entryDepth = 0
	}
	if n := len(d.savedBases) - 1; n >= 0 && d.savedBases[n].depth == depth {
		d.emitter.base, d.savedBases = d.savedBases[n].base, d.savedBases[:n]
	}
	return err
}

// endField takes the value of a field over into the entry.
func (d *xmlDocumentReader) endField(name []byte) error {
	value := bytes.TrimSpace(d.fieldValue)
	if len(value) == 0 {
		return nil
	}
	var err error
	switch string(name) {
	case d.locElem:
		if d.locIsHref {
			return nil
		}
		return d.setLocation(value)
	case d.dateElem:
		d.partialEntry.lastMod, err = parseDate(value)
	case d.fallbackLocElem:
		if d.valueErr == nil {
			d.setFallbackLoc(value)
		}
	case "priority":
		d.partialEntry.priority, err = parsePriority(value)
	case "changefreq":
		d.partialEntry.changeFreq, err = parseChangeFreq(value)
	}
	if err != nil {
		d.emitter.reportError(d.in.line, string(name), value, err)
	}
	return nil
}

// setLocation gives the entry its location. A second one begins a new entry.
func (d *xmlDocumentReader) setLocation(value []byte) (err error) {
	if len(d.partialEntry.loc) > 0 {
		err = d.emitEntry()
		d.partialEntry.reset()
	}
	d.partialEntry.setLocation(value, d.in.line, d.valueErr)
	return err
}

// emitEntry hands the entry over.
func (d *xmlDocumentReader) emitEntry() error {
	d.partialEntry.line = cmp.Or(d.partialEntry.line, d.in.line)
	return d.emitter.emit(&d.partialEntry, d.isIndex)
}

// pushElement notes that an element is open, in memory used before.
func (d *xmlDocumentReader) pushElement(name []byte) {
	n := len(d.openElems)
	if n < cap(d.openElems) {
		d.openElems = d.openElems[:n+1]
		d.openElems[n] = append(d.openElems[n][:0], name...)
		return
	}
	d.openElems = append(d.openElems, bytes.Clone(name))
}

// localName returns an element's name without its prefix.
func localName(name []byte) []byte { return name[bytes.LastIndexByte(name, ':')+1:] }

// namePrefix returns the prefix of an element's name, with its colon.
func namePrefix(name []byte) []byte { return name[:bytes.LastIndexByte(name, ':')+1] }
