//! Rules of OWL 2 RL that the reasoner does not have, and contradictions.

use std::collections::{HashMap, HashSet};

use oxigraph::model::vocab::{rdf, rdfs, xsd};
use oxigraph::model::{NamedNode, NamedOrBlankNode, Term, Triple};

const OWL: &str = "http://www.w3.org/2002/07/owl#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The types of integers, with their least and greatest values.
const INTEGERS: [(&str, i128, i128); 13] = [
    ("integer", i128::MIN, i128::MAX),
    ("nonPositiveInteger", i128::MIN, 0),
    ("negativeInteger", i128::MIN, -1),
    ("nonNegativeInteger", 0, i128::MAX),
    ("positiveInteger", 1, i128::MAX),
    ("long", i64::MIN as i128, i64::MAX as i128),
    ("int", i32::MIN as i128, i32::MAX as i128),
    ("short", i16::MIN as i128, i16::MAX as i128),
    ("byte", i8::MIN as i128, i8::MAX as i128),
    ("unsignedLong", 0, u64::MAX as i128),
    ("unsignedInt", 0, u32::MAX as i128),
    ("unsignedShort", 0, u16::MAX as i128),
    ("unsignedByte", 0, u8::MAX as i128),
];

/// The most contradictions that are told.
const MOST_TOLD: usize = 100;

/// The most pairs for one value of which a rule says that they differ. What follows from more is
/// left out: nothing else needs it, and it could be all pairs of a large graph.
const MOST_PAIRS: usize = 1000;

/// What stands for owl:InverseFunctionalProperty among the facts of the reasoner, whose rule
/// prp-ifp takes all subjects of such a property for the same. It is no IRI, so nobody uses it.
pub const INVERSE_FUNCTIONAL: &str = "http://www.w3.org/2002/07/owl#InverseFunctionalProperty ";

/// What the rules find.
#[derive(Default)]
pub struct Findings {
    /// Facts that were not given.
    pub facts: Vec<Triple>,
    pub contradictions: Vec<String>,
}

/// Applies the rules once to facts.
pub fn apply(triples: &[Triple]) -> Findings {
    let mut rules = Rules { facts: Facts::new(triples), found: Findings::default() };
    rules.equivalences();
    rules.enumerations();
    rules.keys();
    rules.cardinalities();
    rules.inverse_functional();
    rules.chains();
    rules.reflexive();
    rules.ranges();
    rules.differences();
    rules.negations();
    rules.disjoint_classes();
    rules.disjoint_properties();
    rules.functional_values();

    let mut found = rules.found;
    if found.facts.is_empty() {
        return found;
    }
    let properties: HashSet<_> = found.facts.iter().map(|fact| &fact.predicate).collect();
    let known: HashSet<&Triple> =
        triples.iter().filter(|triple| properties.contains(&triple.predicate)).collect();
    found.facts.retain(|fact| !known.contains(fact));
    found.facts.sort_by_cached_key(Triple::to_string);
    found.facts.dedup();
    found
}

type Pair<'a> = (&'a NamedOrBlankNode, &'a Term);

/// Facts by their property, instances by their class, and the first values of OWL's properties.
struct Facts<'a> {
    pairs: HashMap<&'a str, Vec<Pair<'a>>>,
    instances: HashMap<&'a Term, Vec<&'a NamedOrBlankNode>>,
    values: HashMap<(&'a str, &'a NamedOrBlankNode), &'a Term>,
}

/// The properties and classes by which a rule concerns more than the schema.
const WIDE: [&str; 15] = [
    "oneOf",
    "hasKey",
    "maxCardinality",
    "maxQualifiedCardinality",
    "differentFrom",
    "AllDifferent",
    "sourceIndividual",
    "complementOf",
    "AllDisjointClasses",
    "AllDisjointProperties",
    "propertyDisjointWith",
    "FunctionalProperty",
    "distinctMembers",
    "propertyChainAxiom",
    "ReflexiveProperty",
];

impl<'a> Facts<'a> {
    /// Sorts facts. Of a graph without the words above, which may be large, the schema is enough.
    fn new(triples: &'a [Triple]) -> Self {
        let mut wide: HashSet<NamedNode> = WIDE.iter().map(|name| owl(name)).collect();
        wide.insert(NamedNode::new_unchecked(INVERSE_FUNCTIONAL));
        let is_wide = triples.iter().any(|triple| {
            wide.contains(&triple.predicate)
                || triple.predicate == rdf::TYPE
                    && matches!(&triple.object, Term::NamedNode(class) if wide.contains(class))
        });
        let is_schema = |triple: &&Triple| {
            is_wide
                || triple.predicate == rdfs::SUB_CLASS_OF
                || triple.predicate == rdfs::SUB_PROPERTY_OF
                || triple.predicate == rdfs::RANGE
                || triple.predicate.as_str() == format!("{OWL}equivalentProperty")
        };

        let mut facts =
            Self { pairs: HashMap::new(), instances: HashMap::new(), values: HashMap::new() };
        for triple in triples.iter().filter(is_schema) {
            let pair = (&triple.subject, &triple.object);
            let property = triple.predicate.as_str();
            facts.pairs.entry(property).or_default().push(pair);
            if property.starts_with(OWL) || triple.predicate == rdf::FIRST || triple.predicate == rdf::REST {
                facts.values.entry((property, &triple.subject)).or_insert(&triple.object);
            }
            if triple.predicate == rdf::TYPE {
                facts.instances.entry(&triple.object).or_default().push(&triple.subject);
            }
        }
        facts
    }

    fn of(&self, property: &str) -> &[Pair<'a>] {
        self.pairs.get(property).map_or(&[], Vec::as_slice)
    }

    fn owl(&self, name: &str) -> &[Pair<'a>] {
        self.of(&format!("{OWL}{name}"))
    }

    fn instances(&self, class: &Term) -> &[&'a NamedOrBlankNode] {
        self.instances.get(class).map_or(&[], Vec::as_slice)
    }

    fn owl_instances(&self, name: &str) -> &[&'a NamedOrBlankNode] {
        self.instances(&owl(name).into())
    }

    fn inverse_functional(&self) -> &[&'a NamedOrBlankNode] {
        self.instances(&NamedNode::new_unchecked(INVERSE_FUNCTIONAL).into())
    }

    /// The first value of a property of OWL or of lists.
    fn value(&self, subject: &NamedOrBlankNode, property: &str) -> Option<&'a Term> {
        self.values.get(&(property, subject)).copied()
    }

    fn owl_value(&self, subject: &NamedOrBlankNode, name: &str) -> Option<&'a Term> {
        self.value(subject, &format!("{OWL}{name}"))
    }

    fn list(&self, head: &Term) -> Vec<&'a Term> {
        let mut members = Vec::new();
        let mut head = node(head);
        let most = self.of(rdf::FIRST.as_str()).len();
        while let Some(at) = head {
            let Some(first) = self.value(&at, rdf::FIRST.as_str()) else { break };
            if members.len() == most {
                break; // it goes round
            }
            members.push(first);
            head = self.value(&at, rdf::REST.as_str()).and_then(node);
        }
        members
    }

    /// The values of a property by subject.
    fn values(&self, property: &Term) -> HashMap<&'a NamedOrBlankNode, Vec<&'a Term>> {
        let mut values: HashMap<_, Vec<_>> = HashMap::new();
        if let Term::NamedNode(name) = property {
            for &(subject, value) in self.of(name.as_str()) {
                values.entry(subject).or_default().push(value);
            }
        }
        values
    }
}

/// The subjects of a property by value.
fn by_value<'a>(
    values: &HashMap<&'a NamedOrBlankNode, Vec<&'a Term>>,
) -> HashMap<&'a Term, Vec<&'a NamedOrBlankNode>> {
    let mut subjects: HashMap<_, Vec<_>> = HashMap::new();
    for (subject, all) in values {
        for value in all {
            subjects.entry(*value).or_default().push(*subject);
        }
    }
    subjects
}

fn owl(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{OWL}{name}"))
}

fn node(term: &Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(name) => Some(name.clone().into()),
        Term::BlankNode(name) => Some(name.clone().into()),
        _ => None,
    }
}

struct Rules<'a> {
    facts: Facts<'a>,
    found: Findings,
}

impl<'a> Rules<'a> {
    fn fact(&mut self, subject: &NamedOrBlankNode, property: NamedNode, object: impl Into<Term>) {
        self.found.facts.push(Triple::new(subject.clone(), property, object));
    }

    fn contradiction(&mut self, rule: &str, text: String) {
        let told = format!("{text} ({rule})");
        let all = &mut self.found.contradictions;
        if all.len() < MOST_TOLD && !all.contains(&told) {
            all.push(told);
        }
    }

    /// scm-eqc2, scm-eqp1 and scm-eqp2.
    fn equivalences(&mut self) {
        for (below, equal) in [
            (rdfs::SUB_CLASS_OF, "equivalentClass"),
            (rdfs::SUB_PROPERTY_OF, "equivalentProperty"),
        ] {
            let pairs: HashSet<(NamedOrBlankNode, &Term)> =
                self.facts.of(below.as_str()).iter().map(|&(s, o)| (s.clone(), o)).collect();
            for (a, b) in &pairs {
                let Some(other) = node(b) else { continue };
                if *a != other && pairs.contains(&(other, &a.clone().into())) {
                    self.fact(a, owl(equal), (*b).clone());
                }
            }
        }
        for (a, b) in self.facts.owl("equivalentProperty").to_vec() {
            let Some(other) = node(b) else { continue };
            self.fact(a, rdfs::SUB_PROPERTY_OF.into(), b.clone());
            self.fact(&other, rdfs::SUB_PROPERTY_OF.into(), a.clone());
        }
    }

    /// cls-oo.
    fn enumerations(&mut self) {
        for (class, list) in self.facts.owl("oneOf").to_vec() {
            for member in self.facts.list(list) {
                if let Some(member) = node(member) {
                    self.fact(&member, rdf::TYPE.into(), class.clone());
                }
            }
        }
    }

    /// prp-key.
    fn keys(&mut self) {
        for (class, list) in self.facts.owl("hasKey").to_vec() {
            let properties: Vec<_> =
                self.facts.list(list).into_iter().map(|p| self.facts.values(p)).collect();
            let Some((first, others)) = properties.split_first() else { continue };
            let class: Term = class.clone().into();
            let members: HashSet<_> = self.facts.instances(&class).iter().copied().collect();

            let mut by_value: HashMap<&Term, Vec<&NamedOrBlankNode>> = HashMap::new();
            for member in members {
                for value in first.get(member).into_iter().flatten() {
                    let alike = by_value.entry(value).or_default();
                    let same = alike.iter().find(|other| {
                        others.iter().all(|values| {
                            let (Some(a), Some(b)) = (values.get(member), values.get(*other)) else {
                                return false;
                            };
                            a.iter().any(|value| b.contains(value))
                        })
                    });
                    match same {
                        Some(other) => {
                            let other = (*other).clone();
                            self.fact(member, owl("sameAs"), other.clone());
                            self.fact(&other, owl("sameAs"), member.clone());
                        }
                        None => alike.push(member),
                    }
                }
            }
        }
    }

    /// cls-maxc1 and cls-maxc2, cls-maxqc1 to cls-maxqc4.
    fn cardinalities(&mut self) {
        for (word, is_qualified) in [("maxCardinality", false), ("maxQualifiedCardinality", true)] {
            for (restriction, number) in self.facts.owl(word).to_vec() {
                let Term::Literal(number) = number else { continue };
                let Some(property) = self.facts.owl_value(restriction, "onProperty") else { continue };
                let class = self.facts.owl_value(restriction, "onClass");
                let counts = |value: &Term| match (is_qualified, class) {
                    (false, _) => true,
                    (true, None) => false,
                    (true, Some(class)) => {
                        *class == owl("Thing").into()
                            || node(value).is_some_and(|v| self.facts.instances(class).contains(&&v))
                    }
                };

                let values = self.facts.values(property);
                let restriction: Term = restriction.clone().into();
                let mut same = Vec::new();
                let mut clashes = Vec::new();
                for member in self.facts.instances(&restriction) {
                    let counted: Vec<_> = values
                        .get(member)
                        .into_iter()
                        .flatten()
                        .filter(|value| counts(value))
                        .collect();
                    match (number.value(), counted.as_slice()) {
                        ("0", [_, ..]) => clashes.push(format!("{member} has a {property}")),
                        ("1", [first, rest @ ..]) => {
                            same.extend(rest.iter().map(|other| ((**first).clone(), (**other).clone())));
                        }
                        _ => {}
                    }
                }
                for text in clashes {
                    self.contradiction("cls-maxc1", text);
                }
                for (a, b) in same {
                    let (Some(a), Some(b)) = (node(&a), node(&b)) else { continue };
                    self.fact(&a, owl("sameAs"), b.clone());
                    self.fact(&b, owl("sameAs"), a);
                }
            }
        }
    }

    /// prp-ifp.
    fn inverse_functional(&mut self) {
        for property in self.facts.inverse_functional().to_vec() {
            let subjects = by_value(&self.facts.values(&property.clone().into()));
            for same in subjects.into_values() {
                for other in &same[1..] {
                    self.fact(same[0], owl("sameAs"), (*other).clone());
                    self.fact(other, owl("sameAs"), same[0].clone());
                }
            }
        }
    }

    /// A property that is implied by two steps of itself is transitive.
    fn chains(&mut self) {
        for (property, list) in self.facts.owl("propertyChainAxiom").to_vec() {
            let own: Term = property.clone().into();
            if self.facts.list(list) == [&own, &own] {
                self.fact(property, rdf::TYPE.into(), owl("TransitiveProperty"));
            }
        }
    }

    /// A reflexive property leads from each named individual to itself.
    fn reflexive(&mut self) {
        for property in self.facts.owl_instances("ReflexiveProperty").to_vec() {
            let NamedOrBlankNode::NamedNode(property) = property else { continue };
            for individual in self.facts.owl_instances("NamedIndividual").to_vec() {
                self.fact(individual, property.clone(), individual.clone());
            }
        }
    }

    /// The ranges of a property that are integers of some size: a range is also every type that
    /// has all their common values.
    fn ranges(&mut self) {
        let mut common: HashMap<&NamedOrBlankNode, (i128, i128)> = HashMap::new();
        for &(property, range) in self.facts.of(rdfs::RANGE.as_str()) {
            let Some((least, most)) = integers(range) else { continue };
            let bounds = common.entry(property).or_insert((i128::MIN, i128::MAX));
            *bounds = (bounds.0.max(least), bounds.1.min(most));
        }
        for (property, (least, most)) in common {
            for (name, from, to) in INTEGERS {
                if from <= least && most <= to {
                    let range = NamedNode::new_unchecked(format!("{XSD}{name}"));
                    self.fact(property, rdfs::RANGE.into(), range);
                }
            }
        }
    }

    /// eq-diff1 to eq-diff3. What differs from something, from that it differs, too.
    fn differences(&mut self) {
        let mut different: Vec<(NamedOrBlankNode, NamedOrBlankNode)> = Vec::new();
        for (a, b) in self.facts.owl("differentFrom").to_vec() {
            let Some(b) = node(b) else { continue };
            self.fact(&b, owl("differentFrom"), a.clone());
            different.push((a.clone(), b));
        }
        for all in self.facts.owl_instances("AllDifferent").to_vec() {
            for word in ["members", "distinctMembers"] {
                let Some(list) = self.facts.owl_value(all, word) else { continue };
                let members: Vec<_> = self.facts.list(list).into_iter().filter_map(node).collect();
                for (i, a) in members.iter().enumerate() {
                    different.extend(members[i + 1..].iter().map(|b| (a.clone(), b.clone())));
                }
            }
        }
        self.different_ends(&different);

        let same: HashSet<_> = self.facts.owl("sameAs").iter().copied().collect();
        let clashes: Vec<_> = different
            .into_iter()
            .filter(|(a, b)| a == b || same.contains(&(a, &b.clone().into())))
            .collect();
        for (a, b) in clashes {
            self.contradiction("eq-diff1", format!("{a} and {b} are the same and different"));
        }
    }

    /// prp-fp and prp-ifp, told of what differs: two things have different values of a functional
    /// property, so they differ.
    fn different_ends(&mut self, different: &[(NamedOrBlankNode, NamedOrBlankNode)]) {
        if different.is_empty() {
            return;
        }
        for property in self.facts.owl_instances("FunctionalProperty").to_vec() {
            let subjects = by_value(&self.facts.values(&property.clone().into()));
            for (a, b) in different {
                let (a, b): (Term, Term) = (a.clone().into(), b.clone().into());
                let ends = (subjects.get(&a), subjects.get(&b));
                let (Some(left), Some(right)) = ends else { continue };
                let nodes = |all: &[&NamedOrBlankNode]| all.iter().map(|&n| n.clone()).collect();
                self.all_differ(nodes(left), nodes(right));
            }
        }
        for property in self.facts.inverse_functional().to_vec() {
            let values = self.facts.values(&property.clone().into());
            for (a, b) in different {
                let (Some(left), Some(right)) = (values.get(a), values.get(b)) else { continue };
                let nodes = |all: &[&Term]| all.iter().filter_map(|&term| node(term)).collect();
                self.all_differ(nodes(left), nodes(right));
            }
        }
    }

    /// Everything on the left differs from everything on the right.
    fn all_differ(&mut self, left: Vec<NamedOrBlankNode>, right: Vec<NamedOrBlankNode>) {
        if left.len().saturating_mul(right.len()) > MOST_PAIRS {
            return;
        }
        for a in &left {
            for b in right.iter().filter(|b| *b != a) {
                self.fact(a, owl("differentFrom"), b.clone());
                self.fact(b, owl("differentFrom"), a.clone());
            }
        }
    }

    /// prp-npa1, prp-npa2 and cls-com.
    fn negations(&mut self) {
        for (assertion, subject) in self.facts.owl("sourceIndividual").to_vec() {
            let Some(property) = self.facts.owl_value(assertion, "assertionProperty") else { continue };
            let target = self
                .facts
                .owl_value(assertion, "targetIndividual")
                .or_else(|| self.facts.owl_value(assertion, "targetValue"));
            let (Some(subject), Some(target)) = (node(subject), target) else { continue };
            if self.facts.values(property).get(&subject).is_some_and(|all| all.contains(&target)) {
                let text = format!("{subject} has the {property} {target}, which is denied");
                self.contradiction("prp-npa", text);
            }
        }
        for (class, other) in self.facts.owl("complementOf").to_vec() {
            self.check_classes("cls-com", &class.clone().into(), other);
        }
    }

    fn check_classes(&mut self, rule: &str, a: &Term, b: &Term) {
        let members: HashSet<_> = self.facts.instances(a).iter().copied().collect();
        let both = self.facts.instances(b).iter().find(|member| members.contains(*member));
        if let Some(member) = both {
            let text = format!("{member} is in the disjoint classes {a} and {b}");
            self.contradiction(rule, text);
        }
    }

    /// cax-adc. The reasoner knows cax-dw.
    fn disjoint_classes(&mut self) {
        for (a, b) in self.disjoint_members("AllDisjointClasses") {
            self.check_classes("cax-adc", &a, &b);
        }
    }

    /// All pairs of the members of axioms that say that their members are disjoint.
    fn disjoint_members(&self, class: &str) -> Vec<(Term, Term)> {
        let mut pairs = Vec::new();
        for all in self.facts.owl_instances(class) {
            let Some(list) = self.facts.owl_value(all, "members") else { continue };
            let members = self.facts.list(list);
            for (i, a) in members.iter().enumerate() {
                pairs.extend(members[i + 1..].iter().map(|b| ((*a).clone(), (*b).clone())));
            }
        }
        pairs
    }

    /// prp-pdw and prp-adp. What disjoint properties lead to, or lead from, differs.
    fn disjoint_properties(&mut self) {
        let mut pairs = self.disjoint_members("AllDisjointProperties");
        for (a, b) in self.facts.owl("propertyDisjointWith") {
            pairs.push(((*a).clone().into(), (*b).clone()));
        }
        for (a, b) in pairs {
            let (own, others) = (self.facts.values(&a), self.facts.values(&b));
            for (subject, values) in &own {
                let Some(other) = others.get(subject) else { continue };
                let nodes = |all: &[&Term]| all.iter().filter_map(|&term| node(term)).collect();
                self.all_differ(nodes(values), nodes(other));
            }
            let other_subjects = by_value(&others);
            for (value, subjects) in by_value(&own) {
                let Some(other) = other_subjects.get(value) else { continue };
                let nodes = |all: &[&NamedOrBlankNode]| all.iter().map(|&n| n.clone()).collect();
                self.all_differ(nodes(&subjects), nodes(other));
            }

            let clash = own.into_iter().find_map(|(subject, values)| {
                let other = others.get(subject)?;
                values.into_iter().find(|value| other.contains(value)).map(|value| (subject, value))
            });
            if let Some((subject, value)) = clash {
                let text = format!("{subject} has {value} as the disjoint properties {a} and {b}");
                self.contradiction("prp-pdw", text);
            }
        }
    }

    /// prp-fp for literals, which cannot be the same if they differ.
    fn functional_values(&mut self) {
        for property in self.facts.owl_instances("FunctionalProperty").to_vec() {
            let property: Term = property.clone().into();
            let clash = self.facts.values(&property).into_iter().find_map(|(subject, values)| {
                let first = values.iter().find(|value| is_text(value))?;
                let other = values.iter().find(|value| is_text(value) && value != &first)?;
                Some(format!("{subject} has the {property} {first} and {other}, but may have one"))
            });
            if let Some(text) = clash {
                self.contradiction("prp-fp", text);
            }
        }
    }
}

/// Whether a term is text, of which equal values have equal forms.
fn is_text(term: &Term) -> bool {
    matches!(term, Term::Literal(literal) if literal.datatype() == xsd::STRING)
}

/// The bounds of a type of integers.
fn integers(range: &Term) -> Option<(i128, i128)> {
    let Term::NamedNode(name) = range else { return None };
    let name = name.as_str().strip_prefix(XSD)?;
    INTEGERS.iter().find(|(known, _, _)| *known == name).map(|&(_, least, most)| (least, most))
}
