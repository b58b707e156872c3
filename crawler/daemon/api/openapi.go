package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
)

// document returns the OpenAPI document (3.1) of routes.
func document(routes []route, version string) []byte {
	s := &schemas{defs: map[string]schema{}, about: comments()}
	paths := map[string]schema{}
	for _, rt := range routes {
		if paths[rt.path] == nil {
			paths[rt.path] = schema{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = s.operation(&rt)
	}
	s.of(reflect.TypeFor[Problem]())
	text, err := json.MarshalIndent(schema{
		"openapi": "3.1.0",
		"info": schema{"title": "decorum", "version": version, "license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The API of a decorum daemon, a polite web crawler. Errors are problem details (RFC 9457). " +
				"Times are RFC 3339; what ends in _ms is in milliseconds."},
		"security": []schema{{"token": []string{}}, {"session": []string{}}},
		"paths":    paths,
		"components": schema{
			"schemas": s.defs,
			"responses": schema{"Problem": schema{"description": "Why not",
				"content": content("application/problem+json", schema{"$ref": refPrefix + "Problem"})}},
			"parameters": schema{"Reason": schema{"name": reasonHeader, "in": "header", "description": "why, for the audit", "schema": schema{"type": "string"}}},
			"securitySchemes": schema{
				"token":   schema{"type": "http", "scheme": "bearer", "description": "of the file token or token-read in the daemon's data directory"},
				"session": schema{"type": "apiKey", "in": "cookie", "name": sessionCookie},
			},
		},
	}, "", " ")
	if err != nil {
		panic(err) // it is made of strings and maps
	}
	return text
}

func content(contentType string, s schema) schema {
	return schema{contentType: schema{"schema": s}}
}

// operation describes a route.
func (s *schemas) operation(rt *route) schema {
	o := schema{
		"operationId": rt.name, "summary": rt.summary,
		"responses": schema{rt.success(): s.answer(rt), "default": schema{"$ref": "#/components/responses/Problem"}},
	}
	about := rt.about
	if rt.role == Open {
		o["security"] = []schema{}
	} else {
		about = strings.TrimSpace("Needs the role " + string(rt.role) + ". " + about)
		o["x-decorum-role"] = rt.role
	}
	if about != "" {
		o["description"] = about
	}
	if p := s.parameters(rt); len(p) > 0 {
		o["parameters"] = p
	}
	if body := s.body(rt); body != nil {
		o["requestBody"] = body
	}
	responses := o["responses"].(schema)
	if rt.created {
		responses["201"] = schema{"description": "Made", "headers": schema{"Location": schema{"schema": schema{"type": "string"}}}}
	}
	return o
}

// success returns the status of an answer that is none of failure.
func (rt *route) success() string {
	if rt.gives == nil {
		return "204"
	}
	return "200"
}

// answer describes what a route gives.
func (s *schemas) answer(rt *route) schema {
	if rt.gives == nil {
		return schema{"description": "Done"}
	}
	as := rt.as
	if as == "" {
		as = "application/json"
	}
	a := schema{"description": rt.summary, "content": content(as, s.of(reflect.TypeOf(rt.gives)))}
	if _, ok := rt.gives.(Project); ok && rt.method == "GET" {
		a["content"].(schema)["application/yaml"] = schema{"schema": schema{"type": "string"}}
	}
	return a
}

var wildcard = regexp.MustCompile(`{(\w+)}`)

// parameters describes what stands in the path and the query, and the reason.
func (s *schemas) parameters(rt *route) []schema {
	var all []schema
	for _, m := range wildcard.FindAllStringSubmatch(rt.path, -1) {
		all = append(all, schema{"name": m[1], "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range rt.params {
		is := schema{"type": p.is}
		if p.one != nil {
			is["enum"] = p.one
		}
		all = append(all, schema{"name": p.name, "in": "query", "description": p.about, "schema": is})
	}
	if changes(rt.method) && rt.role == Operate {
		all = append(all, schema{"$ref": "#/components/parameters/Reason"})
	}
	return all
}

// body describes what a route takes.
func (s *schemas) body(rt *route) schema {
	if len(rt.types) == 0 {
		return nil
	}
	is := schema{"type": "string"}
	if rt.takesOf != nil {
		is = s.of(reflect.TypeOf(rt.takesOf))
	}
	takes := schema{}
	for _, t := range rt.types {
		takes[t] = schema{"schema": is}
		if rt.takesOf == nil && t == "application/json" {
			takes[t] = schema{"schema": schema{"type": "array"}}
		}
		if t == formTypes[0] {
			takes[t] = schema{"schema": schema{"type": "object", "properties": schema{"token": is, "next": is}}}
		}
	}
	return schema{"content": takes}
}
