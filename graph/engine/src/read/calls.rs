//! Calls of functions in queries that the library runs.

use super::aggregate::Measure;
use super::eval::{Result, wrong};
use super::functions::{is_known, unknown};
use crate::cypher::tokens;

/// Words of queries that may stand before a bracket.
const WORDS: &str = "ALL ALLSHORTESTPATHS AND ANY AS ASC BY CALL CASE CONTAINS CREATE DELETE DESC \
    DETACH DISTINCT ELSE END ENDS EXISTS EXTRACT FILTER FOREACH IN IS LIMIT MATCH MERGE NODETACH \
    NONE NOT ON OPTIONAL OR ORDER REDUCE REMOVE RETURN SET SHORTEST SHORTESTPATH SINGLE SKIP \
    STARTS THEN UNION UNWIND USING WHEN WHERE WITH XOR YIELD";

/// Refuses a call of a function that does not exist. The library would take it for null.
pub fn check_calls(query: &str) -> Result<()> {
    let tokens = tokens(query);
    for at in 1..tokens.len() {
        let name = tokens[at - 1].text.to_lowercase();
        let is_part = at > 1 && tokens[at - 2].is(&[".", ":", "|", "&", "$"]);
        let is_call = name.starts_with(|c: char| c.is_alphabetic()) && tokens[at].is(&["("]);
        let is_word = WORDS.split(' ').any(|word| tokens[at - 1].is(&[word]))
            || Measure::named(&name).is_some();
        if is_call && !is_part && !is_word && !is_known(&name) {
            return Err(wrong(unknown(&name)));
        }
    }
    Ok(())
}
