"""usage: networkx_again.py IN OUT: read a graph with networkx and write it again."""

import json
import sys

import networkx as nx

source, target = sys.argv[1:]
if source.endswith(".json"):
    with open(source) as file:
        graph = nx.node_link_graph(json.load(file), edges="edges")
    with open(target, "w") as file:
        json.dump(nx.node_link_data(graph, edges="edges"), file)
else:
    graph = nx.read_graphml(source, force_multigraph=True)
    nx.write_graphml(graph, target)
print(graph.number_of_nodes(), graph.number_of_edges(), graph.is_directed(), graph.is_multigraph())
