"""The paper's experiments: a plan of cells, a protocol, methods, a runner that survives interruption, and tables.

An experiment is data. A plan (data sets × fractions × methods × runs) is a list of cells; each cell produces rows;
tables and figures read the rows, not the models. ``paretomkl reproduce`` runs everything.
"""
