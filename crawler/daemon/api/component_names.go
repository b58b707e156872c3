package api

import (
	"reflect"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
)

// componentNames are the names of the OpenAPI document's schemas. Clients are
// generated from them, so a type that is renamed in Go keeps its name here.
var componentNames = map[reflect.Type]string{
	reflect.TypeFor[About]():                  "About",
	reflect.TypeFor[AuditEntry]():             "AuditEntry",
	reflect.TypeFor[AuditPage]():              "AuditPage",
	reflect.TypeFor[Brake]():                  "Brake",
	reflect.TypeFor[BrakeRequest]():           "BrakeOrder",
	reflect.TypeFor[FrontierCounts]():         "Counts",
	reflect.TypeFor[DiffLine]():               "DiffLine",
	reflect.TypeFor[Event]():                  "Event",
	reflect.TypeFor[ExplainedRules]():         "ExplainedRules",
	reflect.TypeFor[ExplainedScope]():         "ExplainedScope",
	reflect.TypeFor[ExplainedFrontierState](): "ExplainedState",
	reflect.TypeFor[ExplainedVisit]():         "ExplainedVisit",
	reflect.TypeFor[Explanation]():            "Explanation",
	reflect.TypeFor[Health]():                 "Health",
	reflect.TypeFor[Host]():                   "Host",
	reflect.TypeFor[HostDetail]():             "HostDetail",
	reflect.TypeFor[HostPage]():               "HostPage",
	reflect.TypeFor[AddURLsResult]():          "Intake",
	reflect.TypeFor[ActiveVisit]():            "LiveVisit",
	reflect.TypeFor[VisitHistory]():           "Page",
	reflect.TypeFor[Problem]():                "Problem",
	reflect.TypeFor[CrawlerIdentity]():        "Product",
	reflect.TypeFor[Project]():                "Project",
	reflect.TypeFor[RefusalSummary]():         "Refusal",
	reflect.TypeFor[ReloadResult]():           "Reloaded",
	reflect.TypeFor[Report]():                 "Report",
	reflect.TypeFor[RewriteStep]():            "Rewriting",
	reflect.TypeFor[RobotsDiff]():             "RobotsDiff",
	reflect.TypeFor[RobotsFile]():             "RobotsFile",
	reflect.TypeFor[RobotsVersion]():          "RobotsVersion",
	reflect.TypeFor[ThroughputSample]():       "Sample",
	reflect.TypeFor[ProjectStats]():           "Stats",
	reflect.TypeFor[FrontierURL]():            "URL",
	reflect.TypeFor[botauth.JWK]():            "botauth.JWK",
	reflect.TypeFor[botauth.KeySet]():         "botauth.KeySet",
	reflect.TypeFor[frontier.RefusalCount]():  "frontier.Sighted",
	reflect.TypeFor[robots.RuleMatch]():       "robots.Match",
	reflect.TypeFor[robots.UsageSignal]():     "robots.Signal",
	reflect.TypeFor[robots.PathSpan]():        "robots.Span",
	reflect.TypeFor[robots.Verdict]():         "robots.Verdict",
}
